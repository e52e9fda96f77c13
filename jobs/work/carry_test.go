package work_test

import (
	"sync/atomic"
	"testing"
	"time"

	"loom/jobs/work"
)

// The list of processes says which plugins a provisioner has now, not only which it
// had when it began: plugins are read again while it runs.
func TestListOfPluginsFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var names atomic.Value
	names.Store([]string{"shell"})
	w.provisioner(newRunner(nil), 1, func(p *work.Provisioner) {
		p.Plugins = func() []string { return names.Load().([]string) }
	})
	for _, want := range [][]string{{"shell"}, {"shell", "yard"}, {}, {"yard"}} {
		names.Store(want)
		text := "{"
		for i, name := range want {
			if i > 0 {
				text += ","
			}
			text += name
		}
		w.eventually(20*time.Second, "plugins "+text+"}", func() bool {
			return w.count(`SELECT count(*) FROM processes WHERE kind = 'provisioner' AND plugins::text = $1`, text+"}") == 1
		})
	}
}
