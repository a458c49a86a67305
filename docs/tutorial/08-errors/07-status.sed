# syncDeployment is in status.go now.
/^\/\/ syncDeployment takes one step/,/^}/d
