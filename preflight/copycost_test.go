package preflight

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
)

// TestAssumedPricesAreSaid: with region and date, by check, in its JSON and in the documents.
func TestAssumedPricesAreSaid(t *testing.T) {
	page, err := os.ReadFile("../docs/backfill.md")
	if err != nil {
		t.Fatal(err)
	}
	e := EstimateCopy(&source.TableInfo{Items: 1, Bytes: 1}, config.Backfill{})
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"transfer_dollars"`) {
		t.Errorf("no cost of the transfer in %s", text)
	}
	p := e.Prices
	for _, value := range []string{p.Region, p.AsOf, fmt.Sprint(p.MillionUnits), fmt.Sprint(p.ExportedGB),
		fmt.Sprint(p.StoredGB), fmt.Sprint(p.OutgoingGB)} {
		for where, said := range map[string]string{"note": PriceNote(), "JSON": string(text), "page": string(page)} {
			if !strings.Contains(said, value) {
				t.Errorf("the %s does not say %s", where, value)
			}
		}
	}
}

// TestCopyThatBeginsIsSaidInOneSentence: run prints it before it begins.
func TestCopyThatBeginsIsSaidInOneSentence(t *testing.T) {
	info := source.TableInfo{Items: 30_000_000, Bytes: 28 << 30}
	for from, want := range map[string]string{
		"": "copies about 30,000,000 items (28 GiB) by scan: about 0.92 dollars, 2.52 more for the way out of AWS, " +
			"about 4.1 hours", "none": "",
		"export": "copies about 30,000,000 items (28 GiB) by export: about 3.44 dollars, 2.52 more for the way out of AWS, " +
			"about 0.4 hours",
	} {
		if got := EstimateCopy(&info, config.Backfill{From: from}).Sentence(); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
	small := "copies about 1 item (0 B) by scan: less than a cent, less than ten minutes"
	if got := CopySentence(&source.TableInfo{Items: 1}); got != small {
		t.Error(got)
	}
	slow := config.Backfill{WriteRows: 1000}
	if e := EstimateCopy(&info, slow); e.Scan.Hours < 8 || e.Export.Hours < 8 {
		t.Errorf("at 1,000 rows a second: %v and %v hours", e.Scan.Hours, e.Export.Hours)
	}
}
