package embedded

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

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
