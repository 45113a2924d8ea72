"""The experiments of LLFT (Zhao, Melliar-Smith, Moser), sections VI.A and VI.C."""
