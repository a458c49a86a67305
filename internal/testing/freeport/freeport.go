// Package freeport finds addresses for programs that tests start.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// Address is Find for a test. It fails the test if there is no free address.
func Address(t *testing.T) string {
	t.Helper()
	return must.Get(Find())(t)
}

// claims keeps the UDP ports that Find has opened from being closed by the garbage collector.
var claims struct {
	sync.Mutex
	open []net.PacketConn
}

// Find returns an address on this machine on which no program listens. It avoids the ports that the
// kernel hands out to programs that ask for any port: another program could get such a port before
// the program under test does. No other test gets the address until this process ends: Find keeps
// the UDP port of the same number open, which the programs under test do not use.
func Find() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))
		claim, err := net.ListenPacket("udp", address)
		if err != nil {
			continue // another test's
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			claim.Close()
			continue // taken
		}
		claims.Lock()
		claims.open = append(claims.open, claim)
		claims.Unlock()
		return address, listener.Close()
	}
	return "", errors.New("found no free port between 10000 and 20000")
}
