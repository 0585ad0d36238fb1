package sim

// shrink shortens a sequence of choices while a history still fails: pieces are cut out, then
// numbers are lowered. 0 is the choice at which nothing goes wrong, so what is left shows what has
// to. It tries at most budget histories.
func shrink(script []int, budget int, fails func([]int) bool) []int {
	try := func(next []int) bool {
		if budget <= 0 || !fails(next) {
			return false
		}
		script = next
		return true
	}
	for budget > 0 {
		before := len(script)
		sum := total(script)
		for size := len(script) / 2; size > 0; size /= 2 {
			for from := 0; from+size <= len(script); {
				budget--
				if !try(without(script, from, size)) {
					from += size
				}
			}
		}
		for size := max(len(script)/4, 1); size > 0; size /= 2 {
			for from := 0; from+size <= len(script); from += size {
				if total(script[from:from+size]) > 0 {
					budget--
					try(with(script, from, size, 0))
				}
			}
		}
		for i := range script {
			for v := 1; v < script[i]; v++ {
				budget--
				if try(with(script, i, 1, v)) {
					break
				}
			}
		}
		if len(script) == before && total(script) == sum {
			break
		}
	}
	return script
}

func total(script []int) (sum int) {
	for _, v := range script {
		sum += v
	}
	return sum
}

func without(script []int, from, size int) []int {
	return append(append([]int(nil), script[:from]...), script[from+size:]...)
}

func with(script []int, from, size, v int) []int {
	next := append([]int(nil), script...)
	for i := from; i < from+size && i < len(next); i++ {
		next[i] = v
	}
	return next
}
