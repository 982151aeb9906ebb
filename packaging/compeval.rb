class Compeval < Formula
  desc "@DESCRIPTION@"
  homepage "https://github.com/@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@URL@/@ARCHIVE aarch64-apple-darwin@"
      sha256 "@SHA256 aarch64-apple-darwin@"
    end
  end
  on_linux do
    on_intel do
      url "@URL@/@ARCHIVE x86_64-unknown-linux-gnu@"
      sha256 "@SHA256 x86_64-unknown-linux-gnu@"
    end
    on_arm do
      url "@URL@/@ARCHIVE aarch64-unknown-linux-gnu@"
      sha256 "@SHA256 aarch64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "compeval"
    generate_completions_from_executable(bin/"compeval", "completions")
  end

  test do
    system bin/"compeval", "init", "."
    system bin/"compeval", "check"
  end
end
