package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// A page has the name, flags with their defaults, examples verbatim and escaped control characters; hidden commands have no page.
func TestPages(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "does things"}
	verb := &cobra.Command{Use: "verb FILE", Short: "one thing", Long: "A first paragraph.\n\n.dot and \\back\n'quote", Example: "  tool verb a-b ~/c", RunE: func(*cobra.Command, []string) error { return nil }}
	verb.Flags().IntP("count", "n", 3, "how `MANY`")
	verb.Flags().Bool("secret", false, "not shown")
	if err := verb.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	about := About{Version: "1.2", Files: [][2]string{{"/etc/tool", "its file"}}, Exit: [][2]string{{"0", "done"}}, See: []string{"other(1)"}}
	root.AddCommand(verb, &cobra.Command{Use: "gone", Hidden: true, Run: func(*cobra.Command, []string) {}}, Command(about))
	dir := t.TempDir()
	root.SetArgs([]string{"manual", dir, "--date", "2026-01-02"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadDir(filepath.Join(dir, "man1"))
	if err != nil || len(pages) != 2 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "man1", "tool-verb.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".TH TOOL\\-VERB 1 2026-01-02 \"xdpmon 1.2\"", "tool\\-verb \\- one thing\n", ".B tool verb FILE [flags]\n", "\\&.dot and \\eback\n\\&'quote\n", ".B \\-n, \\-\\-count MANY\nhow MANY (default 3)\n",
		"tool verb a\\-b \\(ti/c\n", ".B /etc/tool\nits file\n", ".BR tool (1) ,\n.BR other (1)\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "secret") {
		t.Error("a hidden flag is in the page")
	}
	for path, want := range map[string]string{"bash/tool": "complete -o default -F __start_tool tool", "zsh/_tool": "#compdef tool", "fish/tool.fish": "complete -c tool"} {
		if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q, %v", path, want, err)
		}
	}
	if got := page(root, About{Date: time.Unix(0, 0).UTC()}); !strings.Contains(string(got), ".SH COMMANDS\n.TP\n.B tool\\-verb(1)\none thing\n") {
		t.Errorf("%s", got)
	}
}
