package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// daemonTimeout is how long the daemon's admin server has to answer.
const daemonTimeout = 2 * time.Second

// Daemon returns the status that the daemon of this configuration serves at admin.listen, or nil if
// none answers. The logs hold the state of the tables; only the daemon can report which services
// fail, and why a table has not opened its log.
func Daemon(ctx context.Context, cfg *config.Config) *pipeline.Status {
	host, port, err := net.SplitHostPort(cfg.Admin.Listen)
	if err != nil || port == "0" {
		return nil
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	status, err := fetch(ctx, net.JoinHostPort(host, port))
	if err != nil || !describes(status, cfg) {
		return nil
	}
	return status
}

// fetch returns the status that an admin server serves.
func fetch(ctx context.Context, address string) (*pipeline.Status, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/status", nil)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	status := &pipeline.Status{}
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read status: %s", reply.Status)
	}
	return status, json.NewDecoder(reply.Body).Decode(status)
}

// describes reports whether a status belongs to the pipeline of the configuration. The daemon of
// another pipeline may listen at the same address.
func describes(s *pipeline.Status, cfg *config.Config) bool {
	if cfg.Selecting() { // the daemon may have found other tables than this process
		return s.Pipeline == cfg.Pipeline
	}
	for _, t := range s.Tables {
		configured := func(c config.Table) bool { return c.Source == t.Source && c.Target == t.Target }
		if !slices.ContainsFunc(cfg.Tables, configured) {
			return false
		}
	}
	return s.Pipeline == cfg.Pipeline && len(s.Tables) == len(cfg.Tables)
}
