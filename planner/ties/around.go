package ties

import (
	"slices"

	"loom/app/loom"
)

// MaxHops is how far around a service a web reaches at most.
const MaxHops = 3

// Around gives what lies within so many hops (1 to MaxHops) of a service: those it
// has to do with, those these have to do with, and so on, with all ties between
// them. From one service to the next is a hop, be it through a name. Conflicts
// lead only away from the service in the middle: what is kept away from a
// neighbour says nothing about it. The Web is empty when there is no such service.
func Around(services map[string]loom.Service, middle string, hops int) Web {
	if _, there := services[middle]; !there {
		return Web{}
	}
	hops = min(max(hops, 1), MaxHops)
	full := newBuilder(services, true).web()
	at := full.at(middle)
	half := full.distances(at)
	var w Web
	index := make([]int, len(full.Things))
	for i, thing := range full.Things {
		index[i] = -1
		if half[i] < 0 || half[i] > 2*hops {
			continue
		}
		thing.Hops = (half[i] + 1) / 2
		index[i] = len(w.Things)
		w.Things = append(w.Things, thing)
	}
	asked := full.asked(at)
	for _, t := range full.Ties {
		// Not those that only say that another service provides a name nobody asks for.
		idle := t.Kind == Provides && t.From != at && full.Things[t.To].Sort != Service && !asked[t.To]
		if index[t.From] >= 0 && index[t.To] >= 0 && !idle {
			t.From, t.To, t.Circle = index[t.From], index[t.To], false
			w.Ties = append(w.Ties, t)
		}
	}
	w.drop(at, index)
	w.findCircles(services)
	w.further(full.Circles, middle)
	return w
}

// further adds the circles of the middle that reach out of the picture.
func (w *Web) further(circles []Circle, middle string) {
	for _, c := range circles {
		same := func(known Circle) bool { return known.Install == c.Install && slices.Equal(known.Path, c.Path) }
		if !slices.Contains(c.Path, middle) || slices.ContainsFunc(w.Circles, same) {
			continue
		}
		w.Circles = append(w.Circles, c)
		w.mark([][]string{c.Path}, c.Install)
	}
}

// asked reports of each thing whether something asks for it, or the middle provides it.
func (w *Web) asked(middle int) []bool {
	asked := make([]bool, len(w.Things))
	for _, t := range w.Ties {
		if t.Kind != Provides || t.From == middle {
			asked[t.To] = true
		}
	}
	return asked
}

// drop takes things out that no tie is left of, but not the middle.
func (w *Web) drop(middle int, index []int) {
	tied := make([]bool, len(w.Things))
	tied[index[middle]] = true
	for _, t := range w.Ties {
		tied[t.From], tied[t.To] = true, true
	}
	to := make([]int, len(w.Things))
	kept := w.Things[:0:0]
	for i, thing := range w.Things {
		to[i] = len(kept)
		if tied[i] {
			kept = append(kept, thing)
		}
	}
	w.Things = kept
	for i := range w.Ties {
		w.Ties[i].From, w.Ties[i].To = to[w.Ties[i].From], to[w.Ties[i].To]
	}
}

// distances gives how far each thing is from the middle in half hops: a name lies
// half way between services. -1 is out of reach.
func (w *Web) distances(middle int) []int {
	half := make([]int, len(w.Things))
	for i := range half {
		half[i] = -1
	}
	next := make([][]int, len(w.Things))
	for _, t := range w.Ties {
		if t.Kind == Conflicts && t.From != middle && t.To != middle {
			continue
		}
		next[t.From] = append(next[t.From], t.To)
		next[t.To] = append(next[t.To], t.From)
	}
	half[middle] = 0
	// Steps cost one half hop at a name and two between services, so a thing may be
	// reached twice, the second time nearer.
	queue := []int{middle}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, y := range next[x] {
			step := 2
			if w.Things[x].Sort != Service || w.Things[y].Sort != Service {
				step = 1
			}
			if half[y] < 0 || half[x]+step < half[y] {
				half[y] = half[x] + step
				queue = append(queue, y)
			}
		}
	}
	return half
}
