package wire

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
)

func nop(zapcore.Level) *zap.Logger { return zap.NewNop() }

// TestCommandNeedsAQueueThatExists: a command that only reads must not create a store.
func TestCommandNeedsAQueueThatExists(t *testing.T) {
	cfg := config.Default()
	cfg.Pipeline, cfg.Queue.Dir = "shop", filepath.Join(t.TempDir(), "none")
	clients := ForCommand(&cfg, nop)
	_, err := clients.Queue(t.Context())
	var known *exit.Error
	if !errors.As(err, &known) || known.Code != exit.CodeEnvironment || known.Hint == "" {
		t.Errorf("%v", err)
	}
	if _, err := QueueURL(&cfg); !errors.As(err, &known) || known.Code != exit.CodeEnvironment {
		t.Errorf("address of a daemon that does not run: %v", err)
	}
	if err := clients.Close(); err != nil {
		t.Error(err)
	}
}

// TestClientsWithoutAnything: no archive is nil, the clock is this machine's, and closing twice is harmless.
func TestClientsWithoutAnything(t *testing.T) {
	cfg := config.Default()
	clients := ForCommand(&cfg, nop)
	if arch, err := clients.Archive(t.Context()); arch != nil || err != nil {
		t.Errorf("%v %v", arch, err)
	}
	if d := time.Since(clients.Now()); d < 0 || d > time.Minute {
		t.Errorf("the clock is off by %v", d)
	}
	if err := errors.Join(clients.Close(), clients.Close()); err != nil {
		t.Error(err)
	}
}

func TestNoReplayWindowKeepsNothing(t *testing.T) {
	cfg := config.Default()
	cfg.Queue.ReplayWindow = 0
	if got := QueueOptions(&cfg).ReplayWindow; got >= 0 {
		t.Errorf("%v: zero would be the package's default", got)
	}
	cfg.Queue.ReplayWindow = config.Duration(time.Hour)
	if got := QueueOptions(&cfg).ReplayWindow; got != time.Hour {
		t.Errorf("%v", got)
	}
}
