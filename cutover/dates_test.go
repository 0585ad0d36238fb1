package cutover_test

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
)

// TestCertificateHasTheTimeOfTheService, Rule 13: the first Date of the command is 100 s behind,
// and the fence of the certificate is not older than the command.
func TestCertificateHasTheTimeOfTheService(t *testing.T) {
	w := newWorld(t, 741, "")
	w.d = w.Run()
	w.put(3, "1")
	w.Config.Protocol.DateTrust = config.Duration(time.Second) // of the command: the daemon runs
	began := w.Clock.Now().Truncate(time.Second)               // Dates have whole seconds
	w.Faults.Skew(-100 * time.Second)
	clients, s := w.Pair("Orders")
	w.Faults.Skew(0)
	var cert *certificate.Certificate
	var err error
	o := cutover.Options{Tables: []string{"Orders"}, Quiet: time.Second, Say: func(string, ...any) {}}
	w.While("the cutover ends", func() { cert, err = cutover.New(w.Config, clients, s, o).Run(t.Context()) })
	if err != nil {
		t.Fatal(err)
	}
	if cert.Times.Fenced.Before(began) {
		t.Errorf("fenced at %s, and the command began at %s", cert.Times.Fenced, began)
	}
}
