//go:build browser

package browser

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Hands are a way to use a page: a journey is written once and made with mouse
// and keyboard. Elements are named by CSS selectors.
type Hands interface {
	// Activate uses a link or button.
	Activate(what, selector string)
	// Choose picks a radio button.
	Choose(what, selector string)
	// Fill replaces the text of a field.
	Fill(what, selector, text string)
}

// Mouse points and clicks.
func (b *Browser) Mouse() Hands { return mouse{b} }

// Keyboard never points: it reaches everything by Tab and arrows and uses it by
// Enter and Space, as people without a mouse do.
func (b *Browser) Keyboard() Hands { return keyboard{b, tabs} }

// PatientKeyboard is Keyboard for pages on which Tab is needed up to so many times.
func (b *Browser) PatientKeyboard(most int) Hands { return keyboard{b, most} }

type mouse struct{ b *Browser }

// still waits until an element is where it was a moment before: what still moves is missed.
func (m mouse) still(selector string) {
	m.b.t.Helper()
	m.b.WaitTrue(selector+" to stand still", fmt.Sprintf(`(e => {
		if (!e) return false;
		const box = e.getBoundingClientRect(), at = [%q, scrollX + box.x, scrollY + box.y].join(), still = window.stoodAt === at;
		window.stoodAt = at;
		return still;
	})(document.querySelector(%[1]q))`, selector))
}

func (m mouse) Activate(what, selector string) {
	m.b.t.Helper()
	m.still(selector)
	m.b.Do(what, chromedp.Click(chromedp.CSS(selector)))
}

func (m mouse) Choose(what, selector string) {
	m.b.t.Helper()
	m.still(selector)
	m.b.Do(what, chromedp.Click(chromedp.CSS(selector)))
}

func (m mouse) Fill(what, selector, text string) {
	m.b.t.Helper()
	m.still(selector)
	m.b.Do(what, chromedp.Click(chromedp.CSS(selector)), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent(text))
}

type keyboard struct {
	b    *Browser
	tabs int
}

// tabs bounds how often Tab may be needed to get somewhere, where nothing else is said.
const tabs = 200

// reach moves the focus with Tab until it is on the element.
func (k keyboard) reach(what, selector string) {
	k.b.t.Helper()
	var path []string
	for range k.tabs {
		// Both in one question: there are many steps.
		at := Get(k.b, what, chromedp.Evaluate[string](fmt.Sprintf(`(e => e && e.matches(%q) ? "" : `+focusText+`)(document.activeElement)`, selector)))
		if at == "" {
			return
		}
		path = append(path, at)
		k.b.Do(what, chromedp.KeyEvent(kb.Tab))
	}
	k.b.t.Fatalf("%s: Tab does not reach %s at %s; it went to %v", what, selector, k.b.URL(), path)
}

// holds reports whether the focus is on the element.
func (k keyboard) holds(what, selector string) bool {
	k.b.t.Helper()
	return Get(k.b, what, chromedp.Evaluate[bool](fmt.Sprintf("document.activeElement !== null && document.activeElement.matches(%q)", selector)))
}

// focusText describes an element e in JavaScript, never as "".
const focusText = `(e ? e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + " " + (e.getAttribute("href") || e.name || "") : "nowhere")`

// focus describes where the focus is.
func (k keyboard) focus(what string) string {
	k.b.t.Helper()
	return Get(k.b, what, chromedp.Evaluate[string](`(e => `+focusText+`)(document.activeElement)`))
}

func (k keyboard) Activate(what, selector string) {
	k.b.t.Helper()
	k.reach(what, selector)
	k.b.Do(what, chromedp.KeyEvent(kb.Enter))
}

// Choose goes to the group and along it with the arrows, which choose as they go.
func (k keyboard) Choose(what, selector string) {
	k.b.t.Helper()
	k.reach(what, "input[type=radio]")
	for range k.tabs {
		if k.holds(what, selector) {
			k.b.Do(what, chromedp.KeyEvent(" "))
			return
		}
		k.b.Do(what, chromedp.KeyEvent(kb.ArrowDown))
	}
	k.b.t.Fatalf("%s: the arrows do not reach %s; the focus is on %s", what, selector, k.focus(what))
}

// Fill types over what is in the field: Tab into a field marks its text.
func (k keyboard) Fill(what, selector, text string) {
	k.b.t.Helper()
	k.reach(what, selector)
	k.b.Do(what, chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent(text))
}

// Has reports whether the page has an element, seen or not; false while one page
// gives way to another.
func (b *Browser) Has(selector string) bool {
	return look[bool](b, fmt.Sprintf("document.querySelector(%q) !== null", selector))
}

// Value returns what a control holds now, "" while there is none.
func (b *Browser) Value(selector string) string {
	return look[string](b, fmt.Sprintf("document.querySelector(%q)?.value ?? ''", selector))
}

// TextOf returns the text of an element, "" while there is none.
func (b *Browser) TextOf(selector string) string {
	return look[string](b, fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector))
}

// WaitFor waits until the page has an element.
func (b *Browser) WaitFor(selector string) {
	b.t.Helper()
	b.Wait("the element "+selector, func() bool { return b.Has(selector) })
}

// WaitGone waits until the page does not have an element any more.
func (b *Browser) WaitGone(selector string) {
	b.t.Helper()
	b.Wait("the end of the element "+selector, func() bool { return !b.Has(selector) })
}

// ReloadUntil loads the page again and again until it shows a text, as people
// without scripts do.
func (b *Browser) ReloadUntil(wanted string) {
	b.t.Helper()
	b.Wait(fmt.Sprintf("the text %q after a reload", wanted), func() bool {
		b.Reload()
		return strings.Contains(b.Text(), wanted)
	})
}

// Open goes to an address.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.Do("open "+url, chromedp.Navigate(url))
}

// Leave does what leads to another page, which may have the address and the look of
// this one, and waits until that has loaded.
func (b *Browser) Leave(act func()) {
	b.t.Helper()
	b.Do("mark the page", chromedp.Evaluate[chromedp.Void](`window.loomLeaves = true; undefined`))
	act()
	b.Wait("another page", func() bool { return look[bool](b, `!window.loomLeaves && document.readyState === "complete"`) })
}
