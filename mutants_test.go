package main

import (
	"testing"

	"example.com/sample-controller/internal/mutants"
)

func TestMutants(t *testing.T) { mutants.Check(t, mutantList) }
