package transform

// checkEmitter refuses combinations that cannot work.
func (c *compiler) checkEmitter(e *emitter) {
	need := map[string]string{"attrs": "{attr}", "map": "{key}", "set": "{member}", "list": "{i}"}[e.kind]
	uses := e.qualifier.Uses
	if e.kind == "attrs" && e.flatten {
		need = "{path}"
	}
	many := need != "" && !e.versions && !(e.kind == "attrs" && len(e.names) == 1)
	if many && !uses[need[1:len(need)-1]] && !(e.kind == "attrs" && uses["path"]) {
		c.ps.Errorf(e.src.To, "to", "write \""+e.family.Name+":"+need+"\"", "`%s` gives several cells, but the column is always %q", e.describe(), e.src.To.S)
	}
	if e.siblings && e.ts == nil {
		c.ps.Errorf(e.src.CellID, "cell_id", "add `ts:`", "`cell_id: ts` needs a cell time from the key or the item")
	}
	if e.aggregate() && e.src.As.S != "int64" {
		c.ps.Errorf(e.src.To, "aggregate", "write `as: int64`", "an aggregate family holds 64-bit integers only")
	}
	if e.kind == "doc" && e.format == "raw" && (len(e.names) > 0 || len(e.except) > 0 || len(e.rename) > 0) {
		c.ps.Errorf(e.src.At, "format", "use format: dynamo_json", "`format: raw` is the image as it came: it cannot leave out or rename attributes")
	}
}

func (c *compiler) lint() {}
