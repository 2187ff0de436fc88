"""Speech frames for classification by phoneme, from NLTK's sample of TIMIT: 16 speakers, ten sentences each.

A frame has 39 columns: 13 mel cepstral coefficients (MFCC), their slopes, and the slopes of these.
"""

import io
import wave
import zipfile

import numpy as np
from scipy.fft import dct

RATE = 16000  # samples a second
WINDOW, HOP, FFT = 400, 160, 512  # samples: 25 ms, 10 ms
FILTERS, COEFFICIENTS = 26, 13

# There are a woman and a man from each of the eight dialect regions. Held out are two of each, from every other region:
# the women of regions 2 and 6, the men of 4 and 8. All regions are left for training.
HELD_OUT = ("dr2-f", "dr4-m", "dr6-f", "dr8-m")

# The 61 labels become 39 classes (Lee and Hon, 1989): each of these counts as the first of its line. "q", the glottal
# stop, is left out.
FOLDED = """
aa ao
ah ax ax-h
er axr
hh hv
ih ix
l el
m em
n en nx
ng eng
sh zh
uw ux
sil pcl tcl kcl bcl dcl gcl h# pau epi
"""
FOLD = {label: line.split()[0] for line in FOLDED.strip().splitlines() for label in line.split()}
DROPPED = "q"


def split(path):
    """(training frames, labels, test frames, labels) of the zip file; columns have mean 0, variance 1 in training."""
    X: dict[bool, list[np.ndarray]] = {False: [], True: []}
    y: dict[bool, list[np.ndarray]] = {False: [], True: []}
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".phn"):
                frames, labels = utterance(archive.read(name[:-3] + "wav"), archive.read(name).decode())
                held_out = name.split("/")[-2].startswith(HELD_OUT)
                X[held_out].append(frames)
                y[held_out].append(labels)
    train, test = np.concatenate(X[False]), np.concatenate(X[True])
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    train, test = ((part - mean) / deviation for part in (train, test))
    return train.astype(np.float32), np.concatenate(y[False]), test.astype(np.float32), np.concatenate(y[True])


def utterance(sound, segments):
    """(frames, labels) of a sentence: a WAV file, and lines of first sample, last sample (exclusive) and label."""
    with wave.open(io.BytesIO(sound)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
    coefficients = mfcc(samples)
    slopes = slope(coefficients)
    frames = np.hstack([coefficients, slopes, slope(slopes)])

    _, ends, labels = zip(*(line.split() for line in segments.splitlines() if line.strip()), strict=True)
    centres = HOP * np.arange(len(frames)) + WINDOW // 2
    where = np.searchsorted(np.array(ends, dtype=int), centres, side="right")  # segments follow each other without gaps
    names = np.array([*(FOLD.get(label, label) for label in labels), DROPPED])  # the last: after all segments
    kept = names[where] != DROPPED
    return frames[kept], names[where][kept]


def mfcc(samples):
    """One row of cepstral coefficients for each whole window."""
    samples = np.asarray(samples, dtype=np.float64)
    samples = np.append(samples[0], samples[1:] - 0.97 * samples[:-1])
    windows = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP] * np.hamming(WINDOW)
    power = np.abs(np.fft.rfft(windows, FFT)) ** 2
    energy = np.maximum(power @ mel_filters().T, 1e-3)  # no logarithm of 0; recordings stay above 0.5
    return dct(np.log(energy), type=2, norm="ortho")[:, :COEFFICIENTS]


def mel_filters():
    """Triangles, evenly spaced in mel = 2595 log10(1 + Hz / 700) from 0 to half the rate; one row each."""
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), FILTERS + 2)
    corners = 700 * (10 ** (mel / 2595) - 1)
    left, peak, right = (corners[i : i + FILTERS, None] for i in range(3))
    hertz = np.fft.rfftfreq(FFT, 1 / RATE)
    return np.clip(np.minimum((hertz - left) / (peak - left), (right - hertz) / (right - peak)), 0, None)


def slope(rows):
    """The slope of each column through five frames, by least squares; the first and last frame are repeated."""
    padded = np.pad(rows, ((2, 2), (0, 0)), mode="edge")
    n = len(rows)
    return sum(k * (padded[2 + k : 2 + k + n] - padded[2 - k : 2 - k + n]) for k in (1, 2)) / 10
