package failure

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestClassNamesAreThoseOfTheClasses: metrics, logs and JSON show the names, so each class needs
// one of its own.
func TestClassNamesAreThoseOfTheClasses(t *testing.T) {
	seen := map[string]bool{}
	for c := None; c <= Different; c++ {
		if name := c.String(); name == "" || seen[name] {
			t.Errorf("class %d is called %q, as another one is or nothing", c, name)
		} else {
			seen[name] = true
		}
	}
	if None.String() != "ok" || Missing.String() != "missing" || Canceled.String() != "canceled" {
		t.Errorf("names %q, %q, %q", None, Missing, Canceled)
	}
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Pause(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("paused %v: %v", time.Since(began), err)
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(stop) })
		began = time.Now()
		if err := Pause(ctx, time.Hour); !errors.Is(err, stop) || time.Since(began) != time.Minute {
			t.Errorf("paused %v: %v, want the cause after a minute", time.Since(began), err)
		}
	})
}
