package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"example.com/sample-controller/internal/freeport"
	"example.com/sample-controller/internal/suite/process"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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
	line := slices.Clone(r.contender.command)
	line[0] = filepath.Join(root, line[0])
	for i, argument := range line {
		argument = strings.ReplaceAll(argument, registryURL, r.registry)
		line[i] = argument
		if !strings.Contains(argument, metricsAddress) {
			continue
		}
		var err error
		if r.metrics, err = freeport.Find(); err != nil {
			return nil, err
		}
		line[i] = strings.ReplaceAll(argument, metricsAddress, r.metrics)
	}
	if r.mode == modeApart {
		line = append([]string{"taskset", "-c", contenderCPU}, line...)
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
