"""What is known elsewhere: published configs and, later, file headers, hubs, logs and this machine."""
