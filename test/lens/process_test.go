package lens

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestKilledBrowserLeavesNothing(t *testing.T) {
	p := begin(t)
	path, _ := chromium()
	allocator, end := chromedp.NewExecAllocator(t.Context(), append(
		chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))...)
	defer end()
	other, cancel := chromedp.NewContext(allocator)
	defer cancel()
	url := mustRead[string](t, p, `location.href`)
	if err := chromedp.Do(other, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	process := chromedp.FromContext(other).Browser.Process()
	started := descendants(process.Pid)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.until(t, func() error {
		for pid, command := range started {
			if now, _ := arguments(pid); now == command {
				return fmt.Errorf("process %d is left: %s", pid, command)
			}
		}
		return nil
	})
	p.press(t, "create") // the lens goes on
	p.settle(t)
}
