"""Small protocols that promise what no protocol of the product promises yet, to prove the checks on."""
