package lens

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/internal/metrics"
)

const (
	burst = 1000
	// The page draws a part of what there is, and keeps a part of what has happened.
	maxElements, maxHeap = 5000, 100 << 20
)

func createFoo(ctx context.Context, namespace, name string) error {
	_, err := fooClient.SamplecontrollerV1alpha1().Foos(namespace).Create(ctx, &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: new(int32(0))},
	}, metav1.CreateOptions{})
	return err
}

func TestThousandFoosAtOnce(t *testing.T) {
	p := begin(t)
	p.press(t, "create") // makes the namespace, too
	p.settle(t)
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`window.tasks = [];
		new PerformanceObserver((list) => tasks.push(...list.getEntries().map((e) => e.duration)))
			.observe({type: "longtask"});
		window.moved = new Set(); // keys whose row has become another one
		(function look(before) {
			const rows = new Map([...document.querySelectorAll(".timeline [data-row]")].map(
				(row) => [row.dataset.row, row.getAttribute("y")]));
			for (const [key, y] of rows) if (key && (before.get(key) ?? y) !== y) moved.add(key);
			requestAnimationFrame(() => look(rows));
		})(new Map())`),
		chromedp.Click(chromedp.JSPath(byText("Slow"))))
	begin := time.Now()
	var wg sync.WaitGroup
	names := make(chan string)
	for range 8 {
		wg.Go(func() {
			for name := range names {
				if err := createFoo(t.Context(), namespace, name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range burst - 1 {
		names <- fmt.Sprintf("foo-%d", i)
	}
	close(names)
	wg.Wait()

	// The wire stands still, so the queue does, too.
	const waiting = `Number(document.querySelector("[data-part=queue]").dataset.count)`
	p.mustWait(t, waiting+" > 0")
	p.mustDo(t, chromedp.Click(chromedp.CSS("[aria-keyshortcuts=Space]")))
	p.until(t, func() error {
		served, err := metrics.Read(metricsAt)
		shown := mustRead[float64](t, p, waiting)
		if depth := served["workqueue_depth"]; err != nil || depth != shown || depth == 0 {
			return fmt.Errorf("%v keys are shown as waiting, and %v wait (error: %v)", shown, depth, err)
		}
		return nil
	})
	t.Logf("paused with %v keys in the queue", mustRead[int](t, p, waiting))
	p.shoot(t, "burst")
	p.mustDo(t, chromedp.Click(chromedp.JSPath(byText("Fast"))))
	p.mustWait(t, fmt.Sprintf(`[...document.querySelectorAll("[data-layer=objects] .caption")].filter(
		(caption) => caption.textContent.endsWith(" %d")).length === 2`, burst))
	p.mustWait(t, waiting+" === 0")
	p.shoot(t, "burst-over")

	if _, err := chromedp.Call(p.tab, heapprofiler.CollectGarbage,
		cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if moved := mustRead[[]string](t, p, `[...moved]`); len(moved) > 0 {
		t.Errorf("while they were shown, %d keys have moved to other rows of the time line: %v", len(moved), moved)
	}
	elements := mustRead[int](t, p, `document.querySelectorAll("*").length`)
	heap := mustRead[int](t, p, `performance.memory.usedJSHeapSize`)
	tasks := mustRead[[]float64](t, p, `tasks`)
	longest, all := 0.0, 0.0
	for _, ms := range tasks {
		longest, all = max(longest, ms), all+ms
	}
	t.Logf("%d Foos in %.0f s: %d tasks of the page took longer than 50 ms, together %.1f s, the longest "+
		"%.0f ms; in the end %d elements and %d MB", burst, time.Since(begin).Seconds(), len(tasks), all/1000,
		longest, elements, heap>>20)
	maxTask := *patience / 18 // a page that does not answer for so long is broken
	if longest > maxTask.Seconds()*1000 || elements > maxElements || heap > maxHeap {
		t.Errorf("want at most %v, %d elements and %d MB", maxTask, maxElements, maxHeap>>20)
	}
}
