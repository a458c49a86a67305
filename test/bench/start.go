package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/internal/process"
)

// start starts the contender.
func (r *run) start(ctx context.Context) error {
	if r.contender.isReference() {
		config, err := r.configFor(r.user)
		if err != nil {
			return err
		}
		w, err := newWriter(config, r.templates)
		if err != nil {
			return err
		}
		if r.made == nil {
			r.made = make(chan *v1alpha1.Foo, r.n)
		}
		r.referenceDone, err = startReference(ctx, w, r.contender, r.made, r.fail)
		return err
	}
	kubeconfig, err := r.kubeconfigFor(r.user)
	if err != nil {
		return err
	}
	line, err := r.commandLine()
	if err != nil {
		return err
	}
	r.process, err = process.Start(exec.Command(line[0], line[1:]...), kubeconfig)
	return err
}

// commandLine returns the command that runs the controller, with an address for its metrics.
func (r *run) commandLine() ([]string, error) {
	line := []string{filepath.Join(root, r.contender.command[0])}
	if r.mode == modeApart {
		line = append([]string{"taskset", "-c", contenderCPU}, line...)
	}
	for _, argument := range r.contender.command[1:] {
		if strings.Contains(argument, metricsAddress) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, fmt.Errorf("finding a free port: %w", err)
			}
			r.metrics = listener.Addr().String()
			if err := listener.Close(); err != nil {
				return nil, err
			}
			argument = strings.ReplaceAll(argument, metricsAddress, r.metrics)
		}
		line = append(line, argument)
	}
	return line, nil
}

// stop stops the contender.
func (r *run) stop() error {
	if r.contender.isReference() {
		close(r.made)
		r.referenceDone()
		r.made = nil
		return nil
	}
	if err := r.process.Stop(); err != nil {
		return err
	}
	r.process = nil
	return nil
}
