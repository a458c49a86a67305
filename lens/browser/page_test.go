package browser

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
)

// page is a page in a tab of the browser.
type page struct {
	tab   context.Context
	close context.CancelFunc

	mu     sync.Mutex
	errors []string // in the console
}

func openPage(url string) (*page, error) {
	p := &page{}
	p.tab, p.close = chromedp.NewContext(browser, chromedp.WithNewWindow(true)) // a hidden tab does not draw
	messages := chromedp.Console(p.tab)
	go func() {
		for message, err := range messages {
			if err != nil {
				return // the tab is closed
			}
			if message.Type == chromedp.ConsoleError || message.IsException() {
				p.mu.Lock()
				p.errors = append(p.errors, fmt.Sprint(message))
				p.mu.Unlock()
			}
		}
	}()
	return p, p.do(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(url))
}

// open opens the page of the lens, and waits until the program runs.
func (l *lens) open() (*page, error) {
	p, err := openPage(l.url)
	if err == nil {
		err = p.wait(`lens.one("process").state === "running"`)
	}
	if err != nil {
		err = fmt.Errorf("%w; in the console: %q; the lens says: %s", err, p.errors, l.Output())
	}
	return p, err
}

// begin returns the shared page when the cluster is empty, nothing is held and all is quiet.
func begin(t *testing.T) *page {
	t.Helper()
	needsBrowser(t)
	p := shared
	p.watch(t)
	p.fast(t) // at Slow, the first Foo would be guided
	foos := fooClient.SamplecontrollerV1alpha1().Foos(namespace)
	deployments := kubeClient.AppsV1().Deployments(namespace) // the garbage collector takes its time
	p.until(t, func() error {
		none, all := metav1.DeleteOptions{}, metav1.ListOptions{}
		return cmp.Or(foos.DeleteCollection(context.Background(), none, all),
			deployments.DeleteCollection(context.Background(), none, all), isEmpty())
	})
	p.settle(t)
	return p
}

func isEmpty() error {
	objects, err := stored()
	if err == nil && len(objects) > 0 {
		err = fmt.Errorf("there are still %v", objects)
	}
	return err
}

// watch makes the test fail if there is an error in the page's console.
func (p *page) watch(t *testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = nil
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.errors) > 0 {
			t.Errorf("the console has errors: %q", p.errors)
		}
	})
}

// do does something in the page, for as long as patience allows.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.tab, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

func (p *page) mustDo(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	must.Do(t, p.do(actions...))
}

func (p *page) wait(expression string) error {
	_, err := chromedp.Run(p.tab,
		chromedp.Poll[any](expression, chromedp.WithPollingTimeout(patience)))
	if err != nil {
		text, _ := read[string](p, `["[role=status]", ".output", "[role=log]"].map((part) =>
			document.querySelector(part)?.innerText.split(/\n+/).slice(-40).join("\n")).join("\n\n")`)
		err = fmt.Errorf("waiting for %s: %w; the page says: %s", expression, err, text)
	}
	return err
}

func (p *page) mustWait(t *testing.T, expression string) {
	t.Helper()
	must.Do(t, p.wait(expression))
}

func read[T any](p *page, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.tab, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
}

func mustRead[T any](t *testing.T, p *page, expression string) T {
	t.Helper()
	return must.Get(read[T](p, expression))(t)
}

func (p *page) until(t *testing.T, check func() error) {
	t.Helper()
	must.Do(t, waitUntil(check))
}

// press presses the button of an action, and waits until that is done.
func (p *page) press(t *testing.T, action string) {
	t.Helper()
	button := fmt.Sprintf(`document.querySelector("[data-action=%s]")`, action)
	p.mustWait(t, button)
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](button+".click()")) // a mouse may miss one that moves
	p.mustWait(t, button+`?.matches("[aria-current=true]:enabled")`)
	if mustRead[bool](t, p, `document.querySelector(".output").classList.contains("failed")`) {
		t.Fatalf("%s: %s", action, mustRead[string](t, p, `document.querySelector(".output").innerText`))
	}
}

// fast makes the lens hold nothing back.
func (p *page) fast(t *testing.T) {
	t.Helper()
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](byText("Fast")+".click()"))
	p.mustWait(t, `lens.one("gate").mode === "open"`)
}

func byText(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("button")].find((b) => b.innerText.includes(%q))`, text)
}

// stored returns the resourceVersions of all Foos and Deployments in the API server, by the IDs
// that the page gives them.
func stored() (map[string]string, error) {
	ctx, versions := context.Background(), map[string]string{}
	foos, err := fooClient.SamplecontrollerV1alpha1().Foos("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, foo := range foos.Items {
		versions["object/foos.samplecontroller.k8s.io/"+foo.Namespace+"/"+foo.Name] = foo.ResourceVersion
	}
	deployments, err := kubeClient.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		versions["object/deployments.apps/"+d.Namespace+"/"+d.Name] = d.ResourceVersion
	}
	return versions, nil
}

// shown is what the page shows of the objects and the queue.
type shown struct {
	Stored, Cached map[string]string // resourceVersion by ID
	Busy           []string          // what is under way
}

const readShown = `(() => {
	const versions = (layer) => Object.fromEntries(
		[...document.querySelectorAll("[data-layer=" + layer + "] [data-id^='object/']")].map(
			(e) => [e.dataset.id, e.getAttribute("aria-label").match(/version (\w+)/)[1]]))
	return {Stored: versions("objects"), Cached: versions("caches"),
		Busy: [...document.querySelectorAll(
			".key.waiting, .key.processing, .flight.held, .request.held, .request.going, .worker.busy")].map(
			(e) => e.getAttribute("aria-label"))}
})()`

// settle waits until the queue is empty, in the page and by the controller's own metrics. And the
// page must show all objects as the API server has them, in the caches, too.
func (p *page) settle(t *testing.T) {
	t.Helper()
	p.until(t, func() error {
		before, err := stored()
		if err != nil {
			return err
		}
		now, err := read[shown](p, readShown)
		if err != nil {
			return err
		}
		if len(now.Busy) > 0 {
			return fmt.Errorf("the page shows as under way: %q", now.Busy)
		}
		if !maps.Equal(now.Stored, before) || !maps.Equal(now.Cached, before) {
			return fmt.Errorf("the page shows %v, and in the caches %v; the API server has %v",
				now.Stored, now.Cached, before)
		}
		served, err := process.ReadMetrics(metricsAt)
		if depth := served["workqueue_depth"]; err != nil || depth > 0 {
			return fmt.Errorf("the depth of the queue is %v (error: %w)", depth, err)
		}
		return nil
	})
}

// preferMotion makes the browser say whether the user wants that nothing moves: "reduce", or
// "no-preference". "" ends that.
func (p *page) preferMotion(t *testing.T, value string) {
	t.Helper()
	must.Get(chromedp.Call(p.tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: value}}}))(t)
}
