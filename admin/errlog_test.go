package admin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestLastLinesOfATableAreKept: warnings and errors, without fields that could name an item.
func TestLastLinesOfATableAreKept(t *testing.T) {
	var kept ErrorLog
	log := zap.New(kept.Beside(zapcore.NewNopCore()))
	orders := log.With(zap.String("table", "Orders"))
	orders.Info("claimed")
	orders.Warn("the sink is away", zap.String("reason", "UNAVAILABLE"), zap.String("row", "secret"))
	log.Error("cannot read shard", zap.String("table", "Users"), zap.Error(errors.New("no route")))
	log.Error("of no table")
	for range 3 {
		orders.Error("halt the table", zap.String("code", "denied"))
	}
	got := kept.Of("Orders")
	if len(got) != 2 || got[0].Text != "halt the table; code: denied" || got[0].Times != 3 || !got[0].Error ||
		got[1].Text != "the sink is away; reason: UNAVAILABLE" || got[1].Error {
		t.Errorf("%+v", got)
	}
	if got := kept.Of("Users"); len(got) != 1 || got[0].Text != "cannot read shard; error: no route" {
		t.Errorf("%+v", got)
	}
	for i := range 100 {
		orders.Warn(fmt.Sprint(i, strings.Repeat("ä", longest)))
	}
	if got := kept.Of("Orders"); len(got) != linesKept || !strings.HasPrefix(got[0].Text, "99ä") ||
		len(got[0].Text) > longest+8 {
		t.Errorf("%d lines, the newest of %d bytes", len(got), len(got[0].Text))
	}
}
