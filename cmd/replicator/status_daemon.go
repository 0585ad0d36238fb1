package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
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
	if reply.StatusCode != http.StatusOK || json.NewDecoder(reply.Body).Decode(s) != nil || s.Pipeline != cfg.Pipeline {
		return nil
	}
	return s
}
