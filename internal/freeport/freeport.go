// Package freeport finds addresses for programs that tests start.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Address is Find for a test, which fails if there is none.
func Address(t *testing.T) string {
	t.Helper()
	address, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Find returns an address on this machine that nobody listens on. Its port is none of those that the
// kernel hands out to whoever asks for any port: one of those could be taken again by anybody before
// the program under test has it.
func Find() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue // taken
		}
		return address, listener.Close()
	}
	return "", errors.New("found no free port between 10000 and 20000")
}
