package main

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsOfRunReachTheDaemon(t *testing.T) {
	for want, args := range map[bool][]string{true: {"--adopt"}, false: nil} {
		var o runOptions
		f := pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.bind(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := o.options().Adopt; got != want {
			t.Errorf("run %v: the pipeline adopts targets: %t", args, got)
		}
	}
}
