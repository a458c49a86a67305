// Package browser finds a Chromium. Its tests open the page of the lens in it, and use the page as a
// person does. They compare what the page shows with what is true on a control plane of their own.
// Without a Chromium, no test is run.
package browser

import (
	"errors"
	"os/exec"
)

// Chromium returns the path of a Chromium, or of a Chrome.
func Chromium() (string, error) {
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium")
}
