package solver

// program maximizes the demand-weighted sum of y, such that no row's groups sum to
// more than 1, by the simplex method. Rows can be added to a solved program, which
// goes on from where it was. Every group must be in a row before the first solve.
// It works in floating point: what it gives are proposals. Products are rounded
// before they are added, so that no processor fuses them to another result.
type program struct {
	groups []int
	rows   []bitset
	// table has a column per group, the right side, and a column per row's slack;
	// goal is its last line, basis the column that each line solves for.
	table  [][]float64
	goal   []float64
	basis  []int
	pivots int
}

const epsilon = 1e-9

func newProgram(d []int64, groups []int) *program {
	p := &program{groups: groups, goal: make([]float64, len(groups)+1)}
	for j, g := range groups {
		p.goal[j] = -float64(d[g])
	}
	return p
}

// add adds a row.
func (p *program) add(set bitset) {
	n := len(p.groups)
	line := make([]float64, n+1+len(p.rows), 2*(n+1+len(p.rows)))
	for j, g := range p.groups {
		if set.has(g) {
			line[j] = 1
		}
	}
	line[n] = 1
	for i, b := range p.basis {
		if f := line[b]; f != 0 {
			for j, v := range p.table[i] {
				line[j] -= float64(f * v)
			}
			line[b] = 0
		}
	}
	for i := range p.table {
		p.table[i] = append(p.table[i], 0)
	}
	p.goal = append(p.goal, 0)
	p.basis = append(p.basis, len(line))
	p.table = append(p.table, append(line, 1))
	p.rows = append(p.rows, set)
}

// solve returns y per group and the use of each row, the dual.
func (p *program) solve() (y, x []float64) {
	n := len(p.groups)
	p.pivots = 0
	limit := 20 * (n + len(p.rows))
	// Rows that are broken by the solution so far come into force.
	for p.pivots < limit {
		out := -1
		for i, line := range p.table {
			if line[n] < -epsilon && (out < 0 || line[n] < p.table[out][n]) {
				out = i
			}
		}
		if out < 0 {
			break
		}
		in, best := -1, 0.0
		for j, v := range p.table[out] {
			if j == n || v >= -epsilon {
				continue
			}
			if r := max(p.goal[j], 0) / -v; in < 0 || r < best-epsilon {
				in, best = j, r
			}
		}
		if in < 0 {
			break
		}
		p.pivot(out, in)
	}
	for p.pivots < 3*limit {
		in := -1
		for j, v := range p.goal {
			// The steepest column first; the first one later, which never cycles.
			if j != n && v < -epsilon && (in < 0 || p.pivots < limit && v < p.goal[in]) {
				in = j
			}
		}
		if in < 0 {
			break
		}
		out := -1
		for i, line := range p.table {
			if line[in] <= epsilon {
				continue
			}
			if out < 0 {
				out = i
				continue
			}
			r, best := line[n]/line[in], p.table[out][n]/p.table[out][in]
			if r < best-epsilon || r <= best+epsilon && p.basis[i] < p.basis[out] {
				out = i
			}
		}
		if out < 0 {
			break
		}
		p.pivot(out, in)
	}
	y, x = make([]float64, n), make([]float64, len(p.rows))
	for i, b := range p.basis {
		if b < n {
			y[b] = min(max(p.table[i][n], 0), 1)
		}
	}
	for i := range x {
		x[i] = max(p.goal[n+1+i], 0)
	}
	return y, x
}

// pivot makes line out solve for column in.
func (p *program) pivot(out, in int) {
	p.pivots++
	line := p.table[out]
	by := line[in]
	for j := range line {
		line[j] /= by
	}
	eliminate := func(other []float64) {
		f := other[in]
		if f == 0 {
			return
		}
		for j, v := range line {
			if v != 0 {
				other[j] -= float64(f * v)
			}
		}
		other[in] = 0
	}
	for i, other := range p.table {
		if i != out {
			eliminate(other)
		}
	}
	eliminate(p.goal)
	p.basis[out] = in
}

// cost of the last solve in steps of the search.
func (p *program) cost() int {
	return p.pivots*len(p.rows)*(len(p.groups)+len(p.rows))/4000 + 1
}
