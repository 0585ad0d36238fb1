package conn

import (
	"testing"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A reader that is too slow is named by its subject: a process has many.
func TestSlowReaderIsNamed(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	c := &Conn{log: zap.New(core), reported: seldom()}
	c.report(nil, &nats.Subscription{Subject: "_INBOX.log"}, nats.ErrSlowConsumer)
	c.report(nil, nil, nats.ErrConnectionClosed)
	all := logs.All()
	if len(all) != 2 || all[0].ContextMap()["subject"] != "_INBOX.log" || all[1].ContextMap()["subject"] != nil {
		t.Errorf("%+v", all)
	}
}

// What is refused every two seconds does not fill the log.
func TestErrorsOfAConnectionAreLoggedSeldom(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	c := &Conn{log: zap.New(core), reported: seldom()}
	for range 100 {
		c.report(nil, nil, nats.ErrPermissionViolation)
	}
	if n := logs.Len(); n == 0 || n > 10 {
		t.Errorf("100 errors at once are %d lines", n)
	}
}
