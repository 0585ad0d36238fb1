package embedded

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestServersLinesAreForTheDaemonsLog: a command on the store of a killed daemon prints its answer,
// and not what the server repairs.
func TestServersLinesAreForTheDaemonsLog(t *testing.T) {
	for command, want := range map[bool][]zapcore.Level{
		false: {zap.DebugLevel, zap.WarnLevel, zap.ErrorLevel, zap.ErrorLevel},
		true:  {zap.DebugLevel, zap.DebugLevel, zap.DebugLevel, zap.DebugLevel},
	} {
		core, lines := observer.New(zap.DebugLevel)
		l := newServerLog(Options{Command: command}, zap.New(core), make(chan string, 1))
		l.Noticef("ready")
		l.Warnf("Filestore [%s] Stream state outdated", "LOG")
		l.Errorf("errored")
		l.Fatalf("no room")
		for i, line := range lines.All() {
			if line.Level != want[i] {
				t.Errorf("command %v: %q has level %s, want %s", command, line.Message, line.Level, want[i])
			}
		}
	}
}

// The server reports "not ready for connections" after a millisecond, which also happens on a busy
// machine: that is unhealthy only when it lasts for seconds.
func TestHealthIsJudgedOverSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &server.HealthStatus{StatusCode: http.StatusInternalServerError,
			Error: "failed to be ready for connections after 1ms"}
		full := &server.HealthStatus{StatusCode: http.StatusServiceUnavailable, Error: "no space left on device"}
		asked := 0
		if err := awaitHealthy(t.Context(), func() *server.HealthStatus {
			if asked++; asked < 20 {
				return busy
			}
			return &server.HealthStatus{StatusCode: http.StatusOK}
		}); err != nil {
			t.Errorf("busy for less than a second: %v", err)
		}
		begin := time.Now()
		if err := awaitHealthy(t.Context(), func() *server.HealthStatus { return full }); err == nil ||
			time.Since(begin) > 0 {
			t.Errorf("full disk: %v after %v", err, time.Since(begin))
		}
		if err := awaitHealthy(t.Context(), func() *server.HealthStatus { return busy }); err == nil ||
			time.Since(begin) < time.Second {
			t.Errorf("not ready for ever: %v after %v", err, time.Since(begin))
		}
	})
}
