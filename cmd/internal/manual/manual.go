// Package manual writes the manual pages and completions of a program from its commands, with the texts of --help.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
)

// About is the content of pages that is not in the commands.
type About struct {
	Version string
	Date    time.Time
	Files   [][2]string // paths, and what they are
	See     []string    // other pages: "xdpmon-coordinator(1)"
	Exit    [][2]string // exit codes
}

// Command is the hidden verb that packages are built with: it writes man1/, bash/, zsh/ and fish/ into a folder.
func Command(about About) *cobra.Command {
	cmd := &cobra.Command{Use: "manual DIR", Short: "Write manual pages and completions", Hidden: true, Args: cli.NeedArgs(1, 1, "DIR, which the pages are written into")}
	date := cmd.Flags().String("date", "", "of the pages, `YYYY-MM-DD`")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if *date != "" {
			if about.Date, err = time.Parse(time.DateOnly, *date); err != nil {
				return cli.UsageError("--date: %w", err)
			}
		}
		return Write(cmd.Root(), args[0], about)
	}
	return cmd
}

// Write writes a page for each command, and the completions.
func Write(root *cobra.Command, dir string, about About) error {
	files := map[string][]byte{}
	pages(root, about, files)
	name := root.Name()
	for path, generate := range map[string]func(*bytes.Buffer) error{
		"bash/" + name:           func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"zsh/_" + name:           func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"fish/" + name + ".fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		files[path] = b.Bytes()
	}
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

func pages(cmd *cobra.Command, about About, files map[string][]byte) {
	files["man1/"+dashed(cmd)+".1"] = page(cmd, about)
	for _, c := range cmd.Commands() {
		if documented(c) {
			pages(c, about, files)
		}
	}
}

// documented are the commands that --help lists, but those that cobra makes.
func documented(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion"
}

func dashed(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is one command in the macros of man(7).
func page(cmd *cobra.Command, about About) []byte {
	var b bytes.Buffer
	name := dashed(cmd)
	fmt.Fprintf(&b, ".\\\" made by `%s manual`\n.TH %s 1 %s \"xdpmon %s\" \"User Commands\"\n.nh\n.ad l\n", cmd.Root().Name(), escape(strings.ToUpper(name)), about.Date.Format(time.DateOnly), escape(about.Version))
	section(&b, "NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", escape(name), escape(cmd.Short))
	section(&b, "SYNOPSIS")
	if cmd.Runnable() {
		fmt.Fprintf(&b, ".B %s\n", escape(cmd.UseLine()))
	}
	if subs(cmd) != nil {
		fmt.Fprintf(&b, ".br\n.B %s COMMAND\n", escape(cmd.CommandPath()))
	}
	section(&b, "DESCRIPTION")
	literal := cmd.Long
	if literal == "" {
		literal = cmd.Short + "."
	}
	paragraphs(&b, literal)
	if list := subs(cmd); list != nil {
		section(&b, "COMMANDS")
		for _, c := range list {
			item(&b, escape(dashed(c))+"(1)", c.Short)
		}
	}
	options(&b, cmd)
	if cmd.Example != "" {
		section(&b, "EXAMPLES")
		verbatim(&b, cmd.Example)
	}
	table(&b, "EXIT STATUS", about.Exit)
	table(&b, "FILES", about.Files)
	section(&b, "SEE ALSO")
	var see []string
	for _, other := range append(relatives(cmd), about.See...) {
		see = append(see, ".BR "+strings.Replace(escape(other), "(", " (", 1))
	}
	b.WriteString(strings.Join(see, " ,\n") + "\n")
	return b.Bytes()
}

func subs(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if documented(c) {
			list = append(list, c)
		}
	}
	return list
}

// relatives are the pages of the program that a page refers to: its parent and what is below it, or its sisters.
func relatives(cmd *cobra.Command) (names []string) {
	if cmd.HasParent() {
		names = append(names, dashed(cmd.Parent())+"(1)")
	}
	for _, c := range subs(cmd) {
		names = append(names, dashed(c)+"(1)")
	}
	return names
}

func options(b *bytes.Buffer, cmd *cobra.Command) {
	flags := cmd.NonInheritedFlags()
	if !flags.HasAvailableFlags() {
		return
	}
	section(b, "OPTIONS")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, help := pflag.UnquoteUsage(f)
		head := "--" + f.Name
		if f.Shorthand != "" {
			head = "-" + f.Shorthand + ", " + head
		}
		if value != "" {
			head += " " + value
		}
		switch f.DefValue {
		case "", "false", "[]", "0", "0s":
		default:
			help += " (default " + f.DefValue + ")"
		}
		item(b, escape(head), help)
	})
}

func section(b *bytes.Buffer, name string) { fmt.Fprintf(b, ".SH %s\n", name) }

func item(b *bytes.Buffer, head, text string) {
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", head, escape(strings.ReplaceAll(text, "\n", " ")))
}

func table(b *bytes.Buffer, name string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	section(b, name)
	for _, row := range rows {
		item(b, escape(row[0]), row[1])
	}
}

// paragraphs are filled, but those with columns or indented lines.
func paragraphs(b *bytes.Buffer, text string) {
	for n, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if n > 0 {
			b.WriteString(".PP\n")
		}
		if strings.Contains(paragraph, "  ") {
			verbatim(b, paragraph)
			continue
		}
		fmt.Fprintf(b, "%s\n", escape(paragraph))
	}
}

func verbatim(b *bytes.Buffer, text string) {
	fmt.Fprintf(b, ".nf\n%s\n.fi\n", escape(strings.TrimRight(text, "\n")))
}

// escape escapes everything that a formatter would read as requests or typeset: lines that begin with a dot or a quote, backslashes, hyphens that are copied
// into a shell.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `~`, `\(ti`, `^`, `\(ha`, "`", `\(ga`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
