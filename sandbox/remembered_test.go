package sandbox

import (
	"net"
	"os"
	"slices"
	"testing"
)

func TestOnlyASandboxThatListensIsFound(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	if env := RememberedEnv(t.Context()); env != nil {
		t.Errorf("%v without a sandbox", env)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := []string{"AWS_ENDPOINT_URL=http://" + ln.Addr().String(), "NATS_URL=nats://127.0.0.1:4222"}
	forget, err := Remember(first)
	if err != nil {
		t.Fatal(err)
	}
	if env := RememberedEnv(t.Context()); !slices.Equal(env, first) {
		t.Errorf("%v, want %v", env, first)
	}
	second := append(slices.Clone(first), "BIGTABLE_EMULATOR_HOST=127.0.0.1:8086")
	forgetSecond, err := Remember(second)
	if err != nil {
		t.Fatal(err)
	}
	forget() // of a sandbox that was replaced: nothing is removed
	if env := RememberedEnv(t.Context()); !slices.Equal(env, second) {
		t.Errorf("%v, want %v", env, second)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if env := RememberedEnv(t.Context()); env != nil {
		t.Errorf("%v of a sandbox that was killed", env)
	}
	forgetSecond()
	file, err := rememberedPath()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
}
