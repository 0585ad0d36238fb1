package main

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"replicator": main})
}

var update = flag.Bool("update", false, "write the files that the tests compare with")

// TestScripts runs the sessions in testdata: what a user types, and what must come back. With -update it writes what
// the cmp lines compare with.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			env.Setenv("AWS_ACCESS_KEY_ID", "sandbox")
			env.Setenv("AWS_SECRET_ACCESS_KEY", "sandbox")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each command sleeps for a second with the race detector
			return nil
		},
	})
}
