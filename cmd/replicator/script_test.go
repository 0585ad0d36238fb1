package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"replicator": main})
}

// TestScripts runs the sessions in testdata: what a user types, and what must come back.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			env.Setenv("AWS_ACCESS_KEY_ID", "sandbox")
			env.Setenv("AWS_SECRET_ACCESS_KEY", "sandbox")
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
	})
}
