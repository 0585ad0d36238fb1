package status

import "slices"

// Whole is the status of the whole pipeline.
type Whole struct {
	Schema   int      `json:"schema"`
	Pipeline string   `json:"pipeline"`
	Ready    bool     `json:"ready"`
	Failing  []string `json:"failing"` // services that the daemon cannot use, since when, and why
	Reasons  []string `json:"reasons"`
	Tables   []Table  `json:"tables"`

	Verdict  Verdict   `json:"verdict"`
	Services []Service `json:"services,omitempty"` // that fail, as in Failing
}

// Judge sets the verdict. now is this process's time.
func (s *Whole) Judge() {
	s.Verdict = Judge(Outlook{Failing: s.Services, Tables: s.Tables, Reasons: len(s.Reasons)})
}

// Summarize joins the tables' statuses.
func Summarize(pipeline string, tables []Table) Whole {
	s := Whole{Schema: 1, Pipeline: pipeline, Failing: []string{}, Reasons: []string{}, Tables: tables}
	for i := range tables {
		t := &tables[i]
		if t.Halts == nil {
			t.Halts = map[string]string{} // an object in JSON, whatever is in it
		}
		for _, r := range t.Reasons {
			s.Reasons = append(s.Reasons, t.Source+": "+r)
		}
	}
	s.Ready = len(s.Reasons) == 0 && len(tables) > 0
	s.Judge()
	return s
}

// Explain adds reasons why the pipeline is not ready that are not those of one of its tables.
func (s *Whole) Explain(reasons []string) {
	s.Reasons = append(s.Reasons, reasons...)
	s.Ready = s.Ready && len(reasons) == 0
	s.Judge()
}

// Fail adds failing services, as sentences and as values: then nothing is ready.
func (s *Whole) Fail(failing []string, services []Service) {
	if len(failing) == 0 {
		return // the lists stay empty: in JSON [], not null
	}
	s.Failing = append(s.Failing, failing...)
	s.Reasons = append(slices.Clone(failing), s.Reasons...)
	s.Ready = false
	s.Services = append(s.Services, services...)
	s.Judge()
}
