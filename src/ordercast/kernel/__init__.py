"""What both drivers, the simulator and the live runtime, do alike on behalf of applications."""
