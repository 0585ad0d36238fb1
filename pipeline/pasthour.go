package pipeline

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
)

// saveHours is after how many samples the last hour of the tables is saved: about once a minute.
const saveHours = 6

// restoreHours continues the last hour of each table where the process before this one ended. What
// the file holds is shown on the status page and decides nothing, so a file that cannot be read is
// none.
func (p *Pipeline) restoreHours(now time.Time) {
	if p.o.PastHour == "" {
		return
	}
	data, err := os.ReadFile(p.o.PastHour)
	if err == nil {
		hours := map[string][]latency.Point{}
		if err = gob.NewDecoder(bytes.NewReader(data)).Decode(&hours); err == nil {
			for _, t := range p.all() {
				t.view.history.Restore(hours[t.Source], now)
			}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Debug("the charts of the hour before this start cannot be read", zap.Error(err))
	}
}

// keepHours saves the last hour of each table.
func (p *Pipeline) keepHours() {
	if p.o.PastHour == "" {
		return
	}
	if err := writeHours(p.o.PastHour, p.Past("", 0).Hours); err != nil {
		p.log.Debug("the charts of the last hour cannot be kept", zap.Error(err))
	}
}

func writeHours(path string, hours map[string][]latency.Point) error {
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(hours); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, data.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
