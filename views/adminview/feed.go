package adminview

import (
	"time"

	"loom/views/ui"
)

// FeedModel is what happened, the newest first, by day.
type FeedModel struct {
	ID    string
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

// FeedItem is a sentence: who, did what, to Link, Note. More folds several alike.
type FeedItem struct {
	Icon, Who, Text string
	Link            FeedLink
	Note            string
	State           *ui.State
	Time            time.Time
	More            []FeedLink
}

// FeedLink is a name that leads somewhere, or nowhere when Href is empty.
type FeedLink struct {
	Text, Href string
	Time       time.Time
}
