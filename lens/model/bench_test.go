package model

import (
	"fmt"
	"testing"
	"time"

	"example.com/sample-controller/lens/wire"
)

// burst returns what is seen when somebody creates n Foos at a time.
func burst(n int) []Seen {
	var seen []Seen
	at, request, event := start, 10, 0
	see := func(s Seen) {
		at = at.Add(20 * time.Microsecond)
		s.At = at
		if s.Wire != nil {
			s.Wire.At = at
		}
		seen = append(seen, s)
	}
	log := func(format string, args ...any) {
		see(Seen{Log: "I0701 " + at.Format("15:04:05.000000") + "   1 a.go:1] " + fmt.Sprintf(format, args...)})
	}
	version := 1
	arrive := func(typ string, o *wire.Object) {
		event++
		version++
		o.ResourceVersion = fmt.Sprint(version)
		see(Seen{Stored: &Stored{Type: typ, Object: o}})
		for _, kind := range []wire.Kind{wire.EventArrived, wire.EventPassed} {
			see(Seen{Wire: &wire.Event{Kind: kind, Verb: "watch", Resource: o.Resource, Type: typ, Object: o, Number: event}})
		}
		log(`"Queueing Foo" foo="default/a%d" because="x" object="default/%s" resourceVersion=%q`, event%n, o.Name, o.ResourceVersion)
	}
	for i := range n {
		arrive("ADDED", foo(fmt.Sprint("a", i), ""))
	}
	log(`"Starting the workers" count=16`)
	for i := range n {
		key := fmt.Sprint("default/a", i)
		log(`"Started syncing Foo" foo=%q`, key)
		request++
		owned := deployment(fmt.Sprint("web", i), "", fmt.Sprint("a", i))
		for _, kind := range []wire.Kind{wire.RequestArrived, wire.RequestPassed, wire.Answered} {
			see(Seen{Wire: &wire.Event{Kind: kind, Request: request, Verb: "create", Resource: deployments,
				Namespace: "default", Object: owned, Code: 201}})
		}
		arrive("ADDED", deployment(owned.Name, "", fmt.Sprint("a", i)))
		log(`"Finished syncing Foo" foo=%q duration="1ms"`, key)
	}
	return seen
}

func BenchmarkSee(b *testing.B) {
	seen := burst(1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); {
		m := New(start, "")
		for _, s := range seen {
			m.See(s)
		}
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(seen)), "µs/See")
}
