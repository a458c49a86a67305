package model

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/sample-controller/lens/wire"
)

// seeProgram notes that the process was started, or that it is gone, and with it all that it had.
func (m *Model) seeProgram(p *Program) {
	m.stopQueue()
	for id, entity := range m.entities {
		switch entity.(type) {
		case *Flight, *Request:
			m.drop(id)
		case *Span:
			m.end(id, true)
		}
	}
	for _, o := range m.objects {
		o.Cached, o.CachedSummary = "", ""
		m.showObject(o)
	}
	for _, w := range m.watches {
		*w = *newWatch(w.Resource)
		w.to(m, "closed", "")
	}
	m.going, m.lines = nil, lines{}
	m.process.Command, m.process.State, m.process.Note = p.Command, "exited", p.Note
	if p.Running {
		m.process.State = "starting"
		m.process.Starts++
		m.note("", "", "The program starts. It has no cache and no queue yet.")
	} else {
		m.note("", "", "The program is gone, and its caches and its queue with it.")
	}
	m.show("process", &m.process)
}

// running notes that the program works.
func (m *Model) running() {
	if m.process.State != "exited" {
		m.process.State = "running"
		m.show("process", &m.process)
	}
}

func (m *Model) seeServer(s *Server) {
	if s.State != m.server.State && m.server.State != "" {
		m.note("", "", "The API server is %s now.", s.State)
	}
	m.server = *s
	m.show("server", &m.server)
}

func (m *Model) seeGate(g *Gate) {
	switch g.Mode {
	case m.gate.Mode:
	case "paused":
		m.note("", "held", "The lens holds back every request and every watch event.")
	case "slow":
		m.note("", "held", "The lens holds back every request and watch event for %s.", g.Delay)
	default:
		m.note("", "", "The lens holds nothing back.")
	}
	m.gate.Mode, m.gate.Delay = g.Mode, g.Delay
	m.show("gate", &m.gate)
}

// learn finds out which kind a resource has, and which resource the keys are of.
func (m *Model) learn(o *wire.Object) {
	if o == nil || o.Kind == "" || o.Kind == "PartialObjectMetadata" || isEvents(o.Resource) {
		return
	}
	if m.kinds[o.Resource] == "" {
		m.kinds[o.Resource], m.resources[o.Kind] = o.Kind, o.Resource
		m.findPrimary()
		for _, known := range m.objects {
			m.showObject(known) // with the ID of its owner
		}
	}
}

// findPrimary decides of which resource the keys are: the kind that the log names, or a watched
// resource that is no built-in.
func (m *Model) findPrimary() {
	primary, best := "", 0
	for _, w := range m.watches {
		kind, rank := m.kinds[w.Resource], 1
		if !scheme.Scheme.IsGroupRegistered(schema.ParseGroupResource(w.Resource).Group) {
			rank++
		}
		if kind != "" && strings.EqualFold(kind, m.kind) {
			rank += 2
		}
		if rank > best {
			primary, best = w.Resource, rank
		}
	}
	if primary != m.process.Primary {
		m.process.Primary = primary
		m.show("process", &m.process)
	}
}
