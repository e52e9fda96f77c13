package form

import "slices"

// Set puts a value in its place; objects on the way to it are made, and what is in
// the way gives way. v may be anything that JSON can hold. A place in a list that
// is not there is left alone: lists grow by Append only.
func (d *Doc) Set(p Path, v any) {
	if len(p) == 0 {
		return
	}
	d.root, _ = setIn(d.root, p, value(v)).(*object)
}

func setIn(at any, p Path, v any) any {
	if len(p) == 0 {
		return v
	}
	switch step := p[0].(type) {
	case string:
		o, ok := at.(*object)
		if !ok {
			o = newObject()
		}
		o.set(step, setIn(o.members[step], p[1:], v))
		return o
	case int:
		if list, ok := at.([]any); ok && step >= 0 && step < len(list) {
			list[step] = setIn(list[step], p[1:], v)
		}
	}
	return at
}

// Delete takes a member out of its object, or a place out of its list.
func (d *Doc) Delete(p Path) {
	if len(p) == 0 {
		return
	}
	parent, _ := d.get(p[:len(p)-1])
	switch step := p[len(p)-1].(type) {
	case string:
		if o, ok := parent.(*object); ok {
			o.remove(step)
		}
	case int:
		if list, ok := parent.([]any); ok && step >= 0 && step < len(list) {
			d.setList(p[:len(p)-1], slices.Delete(slices.Clone(list), step, step+1))
		}
	}
}

// Append adds to a list, which is made where there is none.
func (d *Doc) Append(p Path, v any) {
	old, _ := d.get(p)
	list, _ := old.([]any)
	d.setList(p, append(slices.Clone(list), value(v)))
}

// Swap exchanges two places of a list.
func (d *Doc) Swap(p Path, i, j int) {
	old, _ := d.get(p)
	list, ok := old.([]any)
	if ok && i >= 0 && j >= 0 && i < len(list) && j < len(list) {
		list[i], list[j] = list[j], list[i]
	}
}

func (d *Doc) setList(p Path, list []any) {
	if len(p) == 0 {
		return
	}
	d.root, _ = setIn(d.root, p, list).(*object)
}

// Rename gives a member another name in its place; one that has that name already
// gives way.
func (d *Doc) Rename(p Path, from, to string) {
	v, _ := d.get(p)
	o, ok := v.(*object)
	i := -1
	if ok {
		i = slices.Index(o.keys, from)
	}
	if i < 0 || from == to {
		return
	}
	moved := o.members[from]
	if _, taken := o.members[to]; taken {
		o.remove(to)
		i = slices.Index(o.keys, from)
	}
	delete(o.members, from)
	o.keys[i] = to
	o.members[to] = moved
}
