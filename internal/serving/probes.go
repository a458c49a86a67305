package serving

import (
	"context"
	"net"
	"net/http"
	"time"
)

// A probe is one small request on a connection of its own, and the answer is at hand. So whoever
// takes up more than this is not a kubelet.
const (
	probeTimeout        = 5 * time.Second
	maxProbeHeaderBytes = 4 << 10
	maxProbes           = 2000
)

// StartProbes is Start for a kubelet's probes, over plain HTTP. No client waits for another one: a
// kubelet that has to wait would restart the container.
func StartProbes(ctx context.Context, flagName, address string, handler http.Handler) error {
	return start(ctx, flagName, address, newProbeServer(handler), keepNewest)
}

func newProbeServer(handler http.Handler) *http.Server {
	server := NewServer(handler)
	server.MaxHeaderBytes = maxProbeHeaderBytes
	server.ReadHeaderTimeout, server.ReadTimeout = probeTimeout, probeTimeout
	server.WriteTimeout = probeTimeout
	server.SetKeepAlivesEnabled(false)
	return server
}

// newest is a listener that closes the oldest of maxProbes connections when it accepts one more. So
// those who only hold connections do not keep out the next client.
type newest struct {
	net.Listener
	accepted [maxProbes]net.Conn
	next     int // the place of the oldest
}

func keepNewest(listener net.Listener) net.Listener { return &newest{Listener: listener} }

// Accept must not be called by two at a time. An http.Server does not do that.
func (n *newest) Accept() (net.Conn, error) {
	connection, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if oldest := n.accepted[n.next]; oldest != nil {
		_ = oldest.Close() // it may be closed already
	}
	n.accepted[n.next] = connection
	n.next = (n.next + 1) % maxProbes
	return connection, nil
}
