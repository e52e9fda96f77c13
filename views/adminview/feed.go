package adminview

import (
	"time"

	"github.com/a-h/templ"

	"loom/views/ui"
)

// FeedModel is what happened, the newest first, by day.
type FeedModel struct {
	ID string
	// Attrs fetch the list again; they come from ui.Live.
	Attrs templ.Attributes
	Now   time.Time
	Days  []FeedDay
	Empty ui.EmptyModel
	Pages ui.PaginationModel
}

// FeedDay is a day with what happened on it.
type FeedDay struct {
	Title string
	Items []FeedItem
}

// FeedItem is a sentence: who, did what to Link, Rest, State. More folds several alike.
type FeedItem struct {
	ID, Icon, Who, Text string
	Link                FeedLink
	Rest                string
	// State leads to StateHref; StateSays is heard before its word.
	State                *ui.State
	StateHref, StateSays string
	// Note is why something did not succeed, Actions what leads on.
	Note    string
	Actions []ui.ButtonModel
	Time    time.Time
	More    []FeedLink
}

// FeedLink is a name that leads somewhere, or nowhere when Href is empty.
type FeedLink struct {
	Text, Href string
	Time       time.Time
}
