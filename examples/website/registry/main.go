// Command registry is the registry of Websites that the controller keeps in step. It has no disk:
// when it ends, it has lost everything.
//
//	go -C examples run ./website/registry
//	curl http://127.0.0.1:8090/entries
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.com/sample-controller/examples/website/outside"
)

func main() {
	address := flag.String("address", "127.0.0.1:8090", "`Address` to serve on.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *address); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

// serve serves an empty registry until ctx is done.
func serve(ctx context.Context, address string) error {
	server := &http.Server{Handler: outside.NewServer(), ReadTimeout: 10 * time.Second}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Println("serving on", address)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
