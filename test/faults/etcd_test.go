package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

// etcdProxy stands between an API server and etcd. It passes everything on, except that it can hold
// what etcd's watches show. An API server fills its watch caches from these watches, so the caches
// stay as old as they are then. Its reads and writes of etcd go on.
type etcdProxy struct {
	url  string
	etcd *grpc.ClientConn

	mu       sync.Mutex
	held     []string // the watches of keys that begin so
	released chan struct{}
}

// startEtcdProxy starts a proxy to the etcd at a socket. It holds nothing yet, and ends with this
// process.
func startEtcdProxy(socket string) (*etcdProxy, error) {
	unlimited := grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32))
	conn, err := grpc.NewClient("unix:"+socket, unlimited,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &etcdProxy{url: "http://" + listener.Addr().String(), etcd: conn}
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(p.pass),
		grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32),
		// An API server asks etcd every 30 s whether it is alive, more often than gRPC likes.
		grpc.KeepaliveEnforcementPolicy(
			keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	go func() { _ = server.Serve(listener) }() // fails only if the listener does
	return p, nil
}

// hold holds what the watches of keys with these prefixes show, until release.
func (p *etcdProxy) hold(prefixes ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.released = prefixes, make(chan struct{})
}

// release lets everything go that was held, in order.
func (p *etcdProxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.released)
	}
	p.held = nil
}

// await returns at once, or when the messages to this watch are not held any more.
func (p *etcdProxy) await(ctx context.Context, watch *watchedKeys) {
	p.mu.Lock()
	released := p.released
	holds := false
	for _, prefix := range p.held {
		holds = holds || watch.contain(prefix)
	}
	p.mu.Unlock()
	if holds {
		select {
		case <-released:
		case <-ctx.Done():
		}
	}
}

// pass passes a call on to etcd, with all messages in both directions.
func (p *etcdProxy) pass(_ any, server grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(server)
	headers, _ := metadata.FromIncomingContext(server.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(server.Context(), headers))
	defer cancel()
	both := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	etcd, err := p.etcd.NewStream(ctx, both, method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return err
	}
	var watch watchedKeys
	go func() {
		var message []byte
		for server.RecvMsg(&message) == nil {
			if strings.HasSuffix(method, "/Watch") {
				watch.add(message)
			}
			if etcd.SendMsg(&message) != nil {
				return // RecvMsg below says why
			}
		}
		_ = etcd.CloseSend() // if the stream has ended, there is nothing to close
	}()
	for {
		var message []byte
		err := etcd.RecvMsg(&message)
		if err != nil {
			server.SetTrailer(etcd.Trailer())
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		p.await(ctx, &watch)
		if err := server.SendMsg(&message); err != nil {
			return err
		}
	}
}

// watchedKeys has the requests on a stream of watches, which name the keys.
type watchedKeys struct {
	mu       sync.Mutex
	requests [][]byte
}

func (w *watchedKeys) add(request []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, bytes.Clone(request))
}

func (w *watchedKeys) contain(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, request := range w.requests {
		if bytes.Contains(request, []byte(key)) {
			return true
		}
	}
	return false
}

// rawCodec passes messages on as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (rawCodec) Name() string { return "proto" }
