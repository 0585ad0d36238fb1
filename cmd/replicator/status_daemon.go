package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// askDaemon returns what the daemon of this configuration says about itself, nil where none answers. The logs say how
// the tables are; only the daemon knows which services fail, and what keeps a table from its log.
func askDaemon(ctx context.Context, cfg *config.Config) *pipeline.Status {
	host, port, err := net.SplitHostPort(cfg.Admin.Listen)
	if err != nil || port == "0" {
		return nil
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/status", nil)
	if err != nil {
		return nil
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer reply.Body.Close()
	s := &pipeline.Status{}
	if reply.StatusCode != http.StatusOK || json.NewDecoder(reply.Body).Decode(s) != nil || !describes(s, cfg) {
		return nil
	}
	return s
}

// describes tells whether a status is that of the configuration's pipeline: another pipeline's daemon may listen there.
func describes(s *pipeline.Status, cfg *config.Config) bool {
	for _, t := range s.Tables {
		if !slices.ContainsFunc(cfg.Tables, func(c config.Table) bool { return c.Source == t.Source && c.Target == t.Target }) {
			return false
		}
	}
	return s.Pipeline == cfg.Pipeline && len(s.Tables) == len(cfg.Tables)
}
