package cli

import (
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
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
