// Package lens opens the page of the lens in a real Chromium, and uses it as a person does. It
// compares what the page shows with what is true on a control plane of its own. Without a Chromium,
// no test is run.
//
// With -screenshots, the tests leave pictures of what they see in .local/lens/screenshots.
package lens
