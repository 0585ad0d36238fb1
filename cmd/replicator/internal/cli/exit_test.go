package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// TestExitCodeOfEachClass: a class that is added must have its code on purpose.
func TestExitCodeOfEachClass(t *testing.T) {
	want := map[failure.Class]int{
		failure.None: codeRuntime, failure.Canceled: codeRuntime,
		failure.Usage: codeUsage, failure.Different: codeDifferences,
		failure.Transient: codeEnvironment, failure.Throttled: codeEnvironment, failure.Denied: codeEnvironment,
		failure.Missing: codeEnvironment, failure.Gone: codeEnvironment, failure.Rejected: codeEnvironment,
		failure.Fatal: codeEnvironment, failure.Unready: codeEnvironment,
	}
	for c := failure.None; c <= failure.Different; c++ {
		if code, known := want[c]; !known || exitCode(failure.With(c, "", errors.New("x"))) != code {
			t.Errorf("%s: exit code %d", c, exitCode(failure.With(c, "", errors.New("x"))))
		}
		if !failure.IsReported(failure.Reported(c)) || exitCode(failure.Reported(c)) != want[c] {
			t.Errorf("reported %s: exit code %d", c, exitCode(failure.Reported(c)))
		}
	}
	if code := exitCode(errors.New("x")); code != codeRuntime {
		t.Errorf("no class: exit code %d", code)
	}
}

// TestInterruptedCallIsNoFaultOfItsService: a call that ends because the command does says nothing
// of the service, so the service's hint is not true. What the service itself said stays.
func TestInterruptedCallIsNoFaultOfItsService(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	const safe = "it was interrupted"
	called := &source.Error{Op: "describe table Orders", Class: failure.Canceled, Err: context.Canceled}
	closed := status.Error(codes.Canceled, "grpc: the client connection is closing")
	for _, c := range []struct {
		ctx  context.Context
		err  error
		code int
		hint string
	}{
		{ended, fmt.Errorf("wait: %w", context.Canceled), codeRuntime, safe},
		{ended, source.Explain(called), codeEnvironment, safe},
		{ended, bigtable.Explain(fmt.Errorf("load state: %w", closed)), codeEnvironment, safe},
		{ended, failure.With(failure.None, "the fence stays", called), codeRuntime, "the fence stays"},
		{ended, source.Explain(errors.New("no route")), codeEnvironment, "are region, endpoint and credentials right?"},
		{ended, failure.With(failure.Different, "see above", context.Canceled), codeDifferences, "see above"},
		{t.Context(), bigtable.Explain(closed), codeEnvironment, "is the service reachable"},
	} {
		var out bytes.Buffer
		a := &App{Errs: &out, Path: "replicator verify", Accepted: true}
		if code := a.Verdict(c.ctx, c.err); code != c.code || !strings.Contains(out.String(), c.hint) {
			t.Errorf("%v: exit code %d, %s", c.err, code, out.String())
		}
	}
}
