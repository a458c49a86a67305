// Package prologue starts programs so that nothing which a user has set steers them: the script
// hack/env starts them.
package prologue

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// Command returns a command that runs a program in a folder, as hack/env of its repository says.
func Command(ctx context.Context, folder, name string, args ...string) *exec.Cmd {
	script, err := find(folder)
	command := exec.CommandContext(ctx, script, append([]string{name}, args...)...)
	command.Dir = folder
	if err != nil {
		command.Err = err
	}
	return command
}

// find returns the path of hack/env in the folder or in the nearest folder above it.
func find(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	script := filepath.Join(folder, "hack/env")
	if _, err = os.Stat(script); err == nil || folder == filepath.Dir(folder) {
		return script, err
	}
	return find(filepath.Dir(folder))
}
