package embedded

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A command that starts in the same moment as the daemon may get the store first. The daemon waits
// for it, and says once for whom; no command takes the store before it, and a second daemon is
// refused at once.
func TestDaemonWaitsForACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, begin := t.TempDir(), time.Now()
		core, lines := observer.New(zap.InfoLevel)
		lock := func(command bool) (locks, error) {
			return lockStore(t.Context(), Options{Dir: dir, Command: command}, zap.New(core))
		}
		command, err := lock(true)
		if err != nil {
			t.Fatal(err)
		}
		var daemon locks
		started := make(chan error, 1)
		go func() {
			var err error
			daemon, err = lock(false)
			started <- err
		}()
		synctest.Wait()
		if _, err := lock(false); !errors.Is(err, ErrLocked) || time.Since(begin) > daemonPatience {
			t.Errorf("a second daemon while the first one waits: %v after %v", err, time.Since(begin))
		}
		if err := command.release(); err != nil {
			t.Fatal(err)
		}
		if _, err := lock(true); !errors.Is(err, ErrLocked) {
			t.Errorf("a command took the store from the daemon: %v", err)
		}
		if err := <-started; err != nil || time.Since(begin) > 2*time.Second {
			t.Fatalf("the daemon: %v after %v", err, time.Since(begin))
		}
		all := lines.All()
		if len(all) != 1 || !strings.Contains(all[0].ContextMap()["error"].(string), "pid "+strconv.Itoa(os.Getpid())) {
			t.Errorf("the daemon said: %+v", all)
		}
		if err := daemon.release(); err != nil {
			t.Fatal(err)
		}
		if command, err = lock(true); err != nil {
			t.Fatalf("a command after the daemon: %v", err)
		}
		defer command.release()
		begin = time.Now()
		if _, err := lock(false); !errors.Is(err, ErrLocked) || time.Since(begin) != storePatience {
			t.Errorf("a command that does not end: %v after %v", err, time.Since(begin))
		}
		if command, err = lock(true); !errors.Is(err, ErrLocked) {
			t.Errorf("a second command: %v", err)
		}
	})
}

// A daemon that closes the store lets the next one wait for it.
func TestNextDaemonWaitsForTheOneThatCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Dir: t.TempDir()}
		first, err := lockStore(t.Context(), o, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		first.leave()
		started := make(chan error, 1)
		go func() {
			next, err := lockStore(t.Context(), o, zap.NewNop())
			started <- errors.Join(err, next.release())
		}()
		synctest.Wait()
		time.AfterFunc(10*daemonPatience, func() { _ = first.release() })
		if err := <-started; err != nil {
			t.Error(err)
		}
	})
}
