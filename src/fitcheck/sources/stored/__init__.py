"""What weight files hold, to the byte: their headers, which of them make a build, and what each tensor is of."""
