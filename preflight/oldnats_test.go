package preflight

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
)

// oldNATS returns the URL of a server that says that it is NATS 2.9.
func oldNATS(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go func() {
				fmt.Fprint(conn, `INFO {"server_id":"OLD","version":"2.9.25","proto":1,"headers":true,"jetstream":true,`+
					`"max_payload":8388608}`+"\r\n")
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if lines.Text() == "PING" {
						fmt.Fprint(conn, "PONG\r\n")
					}
				}
			}()
		}
	}()
	return "nats://" + ln.Addr().String()
}

// TestOldServerIsNamed: the check, and the start of run, name the version that is needed.
func TestOldServerIsNamed(t *testing.T) {
	s := newStage(t)
	s.cfg.Queue = config.Queue{URL: oldNATS(t)}
	_, r := s.run(t, Options{})
	for _, p := range append(r.Problems, r.Environment...) {
		if p.Code == "queue" {
			if !strings.Contains(p.What, "it is 2.9.25, and 2.10 or newer is needed") || p.Hint == "" {
				t.Errorf("%+v", p)
			}
			return
		}
	}
	t.Errorf("%+v", r.Problems)
}
